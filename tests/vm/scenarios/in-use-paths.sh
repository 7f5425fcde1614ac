# Native multipath off, dm-multipath over the two disks of a namespace: a path is in use only if its map is, and loses it.
# boot: nvme_core.multipath=N
# limit: 300
nqn=nqn.2024-01.test.nsheal:in-use-paths
tool=/run/vm/guest/inuse-tool

number() { cat "/sys/class/block/$1/dev"; }
with_other() { udevadm settle; $tool "$one" "$one"; }
alone() { udevadm settle; $tool "$one" "$one" "$two"; }
hold() {        # COMM NODE
    cp "$(command -v sleep)" "$WORK/$1"
    "$WORK/$1" 1000 9<"$2" &
    PID=$!
    wait_for 30 grep -qx "$1" "/proc/$PID/comm"
}
let_go() { kill "$PID"; wait "$PID" || :; }

subsystem $nqn 1 2
map $nqn 1
connect $nqn 1 2
read -r one two < <(device_of "uuid.$(uuid_of 1)" | xargs)
check "one disk for each controller" test -b "/dev/$one" -a -b "/dev/$two"
modprobe -a dm-multipath dm-round-robin
dmsetup create mpatha --uuid "mpath-uuid.$(uuid_of 1)" --table \
    "0 $(cat "/sys/class/block/$one/size") multipath 0 0 1 1 round-robin 0 2 1 $(number "$one") 100 $(number "$two") 100"
udevadm settle
map=$(basename "$(readlink -f /dev/mapper/mpatha)")

check "one path of two" equal free with_other
check "both paths of an idle map" equal free alone
mkdir "$WORK/mnt"
mkfs.ext4 -q -F /dev/mapper/mpatha 8M
mount /dev/mapper/mpatha "$WORK/mnt"
check "one path of two of a mounted map" equal free with_other
check "both paths of a mounted map" equal "busy: $map (mpatha) is mounted on $WORK/mnt" alone
umount "$WORK/mnt"
check "both paths after umount" equal free alone

hold multipathd "/dev/$one"
check "multipathd watches its paths: no use" equal free alone
let_go
hold reader "/dev/$one"
check "anybody else is a user of the path" equal "busy: opened by reader (pid $PID)" with_other
let_go
hold reader "/dev/$map"
check "the map is open" equal "busy: $map (mpatha) is opened by reader (pid $PID)" alone
let_go

dmsetup create mpatha-part1 --uuid "part1-mpath-uuid.$(uuid_of 1)" --table "0 1024 linear /dev/mapper/mpatha 0"
check "a partition's map, idle" equal free alone
dmsetup create vg-lv --uuid LVM-nsheal --table "0 512 linear /dev/mapper/mpatha-part1 0"
part=$(basename "$(readlink -f /dev/mapper/mpatha-part1)")
lv=$(basename "$(readlink -f /dev/mapper/vg-lv)")
check "a volume on it" equal "busy: $part (mpatha-part1) is held by $lv (vg-lv)" alone
check "and still a path that is not the last" equal free with_other
dmsetup remove vg-lv
dmsetup remove mpatha-part1

ctrl=$(basename "$(readlink -f "/sys/class/block/$two/device")")
mount /dev/mapper/mpatha "$WORK/mnt"
nvme disconnect -d "$ctrl"
wait_for 30 not test -e "/sys/class/block/$two"
check "the other path has gone: the last one is in use" equal "busy: $map (mpatha) is mounted on $WORK/mnt" with_other
umount "$WORK/mnt"
check "and not after umount" equal free with_other
dmsetup remove mpatha
check "a disk without a map" equal free with_other
