# Who keeps a device that the storage has taken away: each kind of user blocks the rescan and is named, none of them
# loses anything, nobody hears that they were looked at, and when the last has let go the missed namespace comes.
# limit: 500
nqn=nqn.2024-01.test.nsheal:holders
gone=$(uuid_of 2)
mnt=$WORK/mnt
mkdir "$mnt"
words() { nvme-nsheal status | tr -s ' \n' ' '; }
says() { words | grep -qF -- "$1"; }
# blocked_by KIND NAMED: a heal now changes nothing, and status names that user.
blocked_by() {
    check "$1: heal ends well" nvme-nsheal heal --now
    check "$1: blocked" status_says 'NSID 3|nsid=3' blocked
    check "$1: what would go" says "remove /dev/$disk "
    check "$1: by $2" says "in use, $2"
    check "$1: the device stays" device "$gone"
    check "$1: no rescan" equal 0 rescans
}

subsystem $nqn 1 2
map $nqn 1
map $nqn 2
connect $nqn 1 2
conf <<END
[subsystem holders]
nqn = $nqn
namespace = nsid=3
grace = 1s
END
disk=$(device_of "uuid.$gone")
mkfs.ext4 -q -F "/dev/$disk" 8M
mount "/dev/$disk" "$mnt"
echo there >"$mnt/file"
sync -f "$mnt"
# the same file system, seen by somebody who does not share our mounts
unshare --mount --propagation private sleep 1000 &
elsewhere=$!
wait_for 30 grep -qx sleep "/proc/$elsewhere/comm"
deaf $nqn
unmap $nqn 2
map $nqn 3
udevadm settle
udevadm monitor --kernel --udev --subsystem-match=block --subsystem-match=nvme >"$WORK/uevents" 2>&1 &
quiet 1
trace_on

blocked_by "a mount" "mounted on $mnt"
check "a mount: its files are there" equal there cat "$mnt/file"
umount "$mnt"
blocked_by "a mount elsewhere" "mounted on $mnt in the mount namespace of sleep (pid $elsewhere)"
kill $elsewhere
wait $elsewhere || :
sleep 1000 3<"/dev/$disk" &
user=$!
wait_for 30 grep -qx sleep "/proc/$user/comm"
blocked_by "an open file" "opened by sleep (pid $user)"
kill $user
wait $user || :
check "nobody has heard of it" nothing sh -c "grep -E '^(KERNEL|UDEV) *\[' $WORK/uevents || true"
dmsetup create nsheal-linear --table "0 1024 linear /dev/$disk 0"
blocked_by "device-mapper" "held by $(basename "$(readlink -f /dev/mapper/nsheal-linear)") (nsheal-linear)"
dmsetup remove nsheal-linear
loop=$(losetup -f --show "/dev/$disk")
blocked_by "a loop device" "backing ${loop#/dev/}"
losetup -d "$loop"

check "nobody uses it: the same command" nvme-nsheal heal --now
check "brings the missed one" device "$(uuid_of 3)"
check "with a path through both controllers" equal 2 paths_of "$(uuid_of 3)"
check "and what the storage does not have is gone" no_device "$gone"
check "its sibling was left alone" device "$(uuid_of 1)"
check "one rescan of each" equal 2 rescans
