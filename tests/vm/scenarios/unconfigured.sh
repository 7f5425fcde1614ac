# Events of a subsystem that is not configured start nothing; those of a configured one do.
nqn=nqn.2024-01.test.nsheal:configured
other=nqn.2024-01.test.nsheal:configured-not

subsystem $nqn 1
map $nqn 1
subsystem $other 2
map $other 5
map $other 6
connect $nqn 1
conf <<END
[subsystem configured]
nqn = $nqn
namespace = uuid=$(uuid_of 1)
END

connect $other 2
nvme reset "/dev/$(ctrls_of $other)"
check "it is live again" wait_for 30 all_ctrls_are live $other
unmap $other 6
check "its disk is gone" wait_for 30 no_device "$(uuid_of 6)"
disconnect $other
udevadm settle
sleep 1
check "connecting, a reset, a removal, disconnecting: no run" equal 0 service_runs

nvme reset "/dev/$(ctrls_of $nqn)"
check "a reset of the configured one starts the service" wait_for 20 at_least 1 service_runs
