# An administrator who does not want to wait.
nqn=nqn.2024-01.test.nsheal:by-hand
new=$(uuid_of 2)

subsystem $nqn 1 2
map $nqn 1
connect $nqn 1 2
conf <<END
[subsystem hand]
nqn = $nqn
namespace = uuid=$new
grace = 5min
END
deaf $nqn
map $nqn 2
check "without help it stays hidden" always 3 no_device $new
check "status names it" status_says $new missing
check "and says so by its exit code" status_exits 1
check "a probe says why" probe_says $new hidden
check "looking brought nothing" no_device $new

check "heal --dry-run succeeds" nvme-nsheal heal --now --dry-run
check "and asks for no rescan" equal 0 rescans
check "heal --now succeeds" nvme-nsheal heal --now
check "when it returns the device is there" device $new
check "with a path through both controllers" equal 2 paths_of $new
check "status has nothing to complain about" status_exits 0
check "it was not the service" equal 0 service_runs
