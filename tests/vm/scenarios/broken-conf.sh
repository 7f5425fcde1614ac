# A broken configuration: nothing is done, every fault has its line, and the next good one works by itself.
nqn=nqn.2024-01.test.nsheal:broken
new=$(uuid_of 2)

subsystem $nqn 1 2
map $nqn 1
connect $nqn 1 2
deaf $nqn
map $nqn 2
quiet 1
conf <<END
[subsystem broken]
nqn = $nqn
namespace = uuid=$new
grase = 1s
END
fast_timer 2s
trace_on
timer_on
check "several runs" wait_for 60 at_least 2 service_runs
check "the journal names file and line" wait_for 10 journal_says '/etc/nvme-nsheal\.conf:4: '
check "no admin command" nothing admin_commands
check "no rescan" equal 0 rescans
check "no device" no_device $new
check "status exits 3" status_exits 3
check "check-config exits 3" exits 3 nvme-nsheal check-config

conf <<END
[subsystem broken]
nqn = $nqn
namespace = uuid=$new
grace = 1s
END
check "after the correction the device comes" wait_for 60 device $new
check "with a path through both controllers" wait_for 30 equal 2 paths_of $new
check "check-config exits 0" exits 0 nvme-nsheal check-config
