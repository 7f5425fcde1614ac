# Native multipath off: a visible disk for each controller, under the controller.
# boot: nvme_core.multipath=N
nqn=nqn.2024-01.test.nsheal:no-multipath
new=$(uuid_of 2)

check "native multipath is off" equal N cat /sys/module/nvme_core/parameters/multipath
subsystem $nqn 1 2
map $nqn 1
connect $nqn 1 2
conf <<END
[subsystem single]
nqn = $nqn
namespace = uuid=$new
grace = 1s
END
deaf $nqn
quiet 1
trace_on
map $nqn 2
check "without help it stays hidden" always 3 no_device $new
run_service
check "the device is there" wait_for 30 device $new
check "a disk for each controller" wait_for 30 equal 2 paths_of $new
check "each controller was scanned once" equal "1 1" scans_of_all $nqn
check "status has nothing to complain about" status_exits 0
