# One controller alone missed the notice: the device is there and lacks a path.
nqn=nqn.2024-01.test.nsheal:paths
new=$(uuid_of 2)

subsystem $nqn 1 2
map $nqn 1
connect $nqn 1 2
for ctrl in $(ctrls_of $nqn | tail -n 1); do
    nvme set-feature "/dev/$ctrl" -f 0x0b --value=0 >/dev/null
done
map $nqn 2
check "the device came through the other one" wait_for 10 device $new
quiet 1
check "with one path" equal 1 paths_of $new
conf <<END
[subsystem paths]
nqn = $nqn
namespace = uuid=$new
END
trace_on
check "paths = any: heal" nvme-nsheal heal --now
check "status counts it and is content" status_exits 0
check "and says so" something sh -c "nvme-nsheal status | tr '\n' ' ' | grep -E '1 +not +through +every +controller'"
check "nobody was asked" nothing admin_commands
conf <<END
[subsystem paths]
nqn = $nqn
namespace = uuid=$new
paths = all
END
check "paths = all: a fault" status_exits 1
check "degraded" status_says $new degraded
check "heal" nvme-nsheal heal --now
check "brings the other path" equal 2 paths_of $new
check "by a rescan of the controller that lacked it, and of no other" equal 1 rescans
check "status has nothing to complain about" status_exits 0
