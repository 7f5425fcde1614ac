# The timer alone finds a namespace whose notice was lost: such a loss makes no uevent, so nothing else can.
# With the shipped intervals.
nqn=nqn.2014-08.org.nvmexpress:uuid:7c5f1e0e-a-name-of-well-over-eighty-bytes-as-storage-arrays-like-to-give-them
new=$(uuid_of 2)

check "the NQN is longer than 80 bytes" [ ${#nqn} -gt 80 ]
subsystem $nqn 1 2
map $nqn 1
connect $nqn 1 2
mask nvme-nsheal.path
conf <<END
[subsystem long]
nqn = $nqn
namespace = uuid=$new
END
deaf $nqn
quiet 1
trace_on
map $nqn 2
check "without help it stays hidden" always 8 no_device $new

timer_on
check "the timer alone brings the device" wait_for 90 device $new
check "with a path through both controllers" wait_for 30 equal 2 paths_of $new
check "each controller was scanned once" equal "1 1" scans_of_all $nqn
check "the product asked for both" equal 2 rescans
check "the run ends" wait_for 60 service_is_idle
check_not "and does not fail" service_failed
check "status has nothing to complain about" status_exits 0
