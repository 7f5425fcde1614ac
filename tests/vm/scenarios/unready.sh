# All controllers are reconnecting: the kernel scans by itself when they are live again.
nqn=nqn.2024-01.test.nsheal:unready
away=$(uuid_of 2)

subsystem $nqn 1 2
map $nqn 1
connect $nqn 1 2
conf <<END
[subsystem unready]
nqn = $nqn
namespace = uuid=$away
grace = 1s
END
close_port 1 $nqn
close_port 2 $nqn
check "the controllers are reconnecting" wait_for 30 all_ctrls_are connecting $nqn
# While nobody is connected: nobody can get a notice.
map $nqn 2
run_service
check "status says unready" status_says "$away" unready
check "and exits 1" status_exits 1
check "no rescan" equal 0 rescans
check_not "the unit is not failed" service_failed

open_port 1 $nqn
open_port 2 $nqn
check "the device comes with the controllers" wait_for 60 device $away
check "that took no rescan of ours" equal 0 rescans
check "status has nothing to complain about" wait_for 30 status_exits 0
