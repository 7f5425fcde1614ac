# A disk goes only with its last path: a controller that leaves one out takes a path and no disk, and the last one is held.
# limit: 400
. /run/vm/guest/lib-faulty.sh

nqn=nqn.2024-01.test.nsheal:last-path
used=$(uuid_of 2)
mnt=$WORK/mnt
mkdir "$mnt"
target() { faulty $nqn "$@"; }

faulty_target $nqn 1 2
target map 1-2
faulty_connect $nqn 1 2
conf <<END
[subsystem last-path]
nqn = $nqn
namespace = nsid=3
grace = 1s
END
disk=$(device_of "uuid.$used")
mkfs.ext4 -q -F "/dev/$disk" 8M
mount "/dev/$disk" "$mnt"
echo there >"$mnt/file"
sync -f "$mnt"

target map 3 silent
target fault identify cns=2 without=2 on=1
quiet 1
trace_on
check "one controller leaves out what is mounted: heal" nvme-nsheal heal
check "brings the missed one" device "$(uuid_of 3)"
check "with a path through both controllers" wait_for 10 equal 2 paths_of "$(uuid_of 3)"
check "a path went" wait_for 10 equal 1 paths_of "$used"
check "and no disk" device "$used"
echo 3 >/proc/sys/vm/drop_caches
check "it can be read" equal there cat "$mnt/file"

# now the other one as well
sed -i s/nsid=3/nsid=4/ "$CONF"
target map 4 silent
target fault identify cns=2 without=2 on=2
quiet 1
trace_on
check "and then the other: heal" nvme-nsheal heal
check "brings the missed one by the controller that takes nothing" device "$(uuid_of 4)"
check "the mounted disk is there" device "$used"
check "the other controller is not rescanned" equal 0 scans "$(faulty_ctrl $nqn 2)"
echo 3 >/proc/sys/vm/drop_caches
check "it can still be read" equal there cat "$mnt/file"
check "the path through it is left out" equal 1 paths_of "$(uuid_of 4)"

umount "$mnt"
sed -i 's/^grace.*/&\npaths = all/' "$CONF"
check "nobody uses it, all paths wanted: heal" nvme-nsheal heal
check "brings the other path" wait_for 10 equal 2 paths_of "$(uuid_of 4)"
check "and lets the disk go" no_device "$used"
