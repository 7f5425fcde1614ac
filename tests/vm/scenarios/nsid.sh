# Expected by NSID 7; the kernel calls it nvme0n2: names are in order of discovery.
nqn=nqn.2024-01.test.nsheal:nsid
new=$(uuid_of 7)

subsystem $nqn 1 2
map $nqn 1
connect $nqn 1 2
conf <<END
[subsystem nsid]
nqn = $nqn
namespace = nsid=7
grace = 1s
END
deaf $nqn
map $nqn 7
check "without help it stays hidden" always 3 no_device $new
run_service
check "the device is there" wait_for 30 device $new
check "it is called after its turn, not after its NSID" name_ends_in n2 $new
check "with a path through both controllers" wait_for 30 equal 2 paths_of $new
check "status has nothing to complain about" status_exits 0
