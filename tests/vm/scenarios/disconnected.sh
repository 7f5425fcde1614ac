# The subsystem is not connected: connecting is somebody else's job.
nqn=nqn.2024-01.test.nsheal:disconnected
other=nqn.2024-01.test.nsheal:another

subsystem $nqn 1
map $nqn 1
subsystem $other 2
map $other 5
connect $other 2
quiet 1
conf <<END
[subsystem away]
nqn = $nqn
namespace = uuid=$(uuid_of 1)
grace = 1s
END
trace_on
run_service
check "status says disconnected" status_says "$(uuid_of 1)|away" disconnected
check "and exits 1" status_exits 1
check "no admin command to anybody" nothing admin_commands
check "no rescan" equal 0 rescans
check_not "the unit is not failed" service_failed
check "nothing was connected" nothing ctrls_of $nqn
