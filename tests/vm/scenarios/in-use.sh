# Who uses a disk: every kind of use is seen and named and is over when it is undone, and nobody notices the question.
# limit: 600
nqn=nqn.2024-01.test.nsheal:in-use
tool=/run/vm/guest/inuse-tool
uevents=$WORK/uevents
dir=$WORK/mnt

# answer NAME [GONE...]: what the tool says, asked when everything before it has settled. Events that come between the
# question and a second after it are kept in $WORK/noise.
answer() {
    local before
    udevadm settle
    calm
    before=$(wc -l <"$uevents")
    $tool "$@"
    sleep 1
    tail -n "+$((before + 1))" "$uevents" >>"$WORK/noise"
}
calm() {
    local seen=
    while [ "$seen" != "$(wc -l <"$uevents")" ]; do
        seen=$(wc -l <"$uevents")
        sleep 0.7
    done
}
asked() { answer "$disk"; }
is_free() { equal free asked; }
is_used() { equal "busy: $1" asked; }
# hold COMMAND...: a process that is there until let_go. PID is its number.
hold() {
    "$@" &
    PID=$!
    wait_for 30 grep -qx sleep "/proc/$PID/comm"
}
# blkpg 1, blkpg 2: partition 1 is there, is gone. Told to the kernel (BLKPG), not written on the disk: all namespaces of
# this machine have the same data.
blkpg() {
    python3 - "$1" "$node" <<'END'
import ctypes, fcntl, os, struct, sys
part = ctypes.create_string_buffer(struct.pack("qqi64s64s4x", 16 << 20, 16 << 20, 1, b"", b""))
disk = os.open(sys.argv[2], os.O_RDONLY)
fcntl.ioctl(disk, 0x1269, struct.pack("iii4xP", int(sys.argv[1]), 0, 152, ctypes.addressof(part)))
END
}
let_go() { kill "$PID"; wait "$PID" || :; }

subsystem $nqn 1 2
map $nqn 1
map $nqn 2
connect $nqn 1 2
disk=$(device_of "uuid.$(uuid_of 1)")
node=/dev/$disk
mkdir "$dir"
: >"$WORK/noise"
stdbuf -oL udevadm monitor --kernel --udev -s block -s nvme -s nvme-generic >"$uevents" 2>&1 &
sleep 1

check "a disk that nobody uses is free" is_free

mkfs.ext4 -q -F "$node" 8M
mount "$node" "$dir"
check "mounted" is_used "mounted on $dir"
umount "$dir"
check "free after umount" is_free

hold unshare --mount sh -c "mount $node $dir; exec sleep 1000"
check "mounted in another mount namespace" is_used "mounted on $dir in the mount namespace of sleep (pid $PID)"
let_go
check "free when the namespace has gone" is_free

# A namespace kept by a file, in which no process lives.
mkdir "$WORK/ns"
mount --bind "$WORK/ns" "$WORK/ns"
mount --make-private "$WORK/ns"
: >"$WORK/ns/kept"
unshare --mount="$WORK/ns/kept" mount "$node" "$dir"
check "mounted where nobody lives" is_used "claimed by somebody who could not be found (a file system of several devices, ZFS, or a mount in a namespace without processes)"
umount "$WORK/ns/kept"
umount "$WORK/ns"
check "free when that namespace has gone" is_free

hold setpriv --reuid=65534 --regid=65534 --clear-groups sleep 1000 9<"$node"
check "opened by a process of another user" is_used "opened by sleep (pid $PID)"
let_go
check "free when the process has ended" is_free

generic=$(basename "/sys/class/block/$disk"/../ng*n"${disk##*n}")
hold sleep 1000 9<"/dev/$generic"
check "opened by the generic character device" is_used "$generic is opened by sleep (pid $PID)"
let_go

blkpg 1
wait_for 10 test -b "${node}p1"
check "a partition is no use" is_free
hold sleep 1000 9<"${node}p1"
check "a partition is open" is_used "${disk}p1 is opened by sleep (pid $PID)"
let_go
mkfs.ext4 -q -F "${node}p1"
mount "${node}p1" "$dir"
check "a partition is mounted" is_used "${disk}p1 is mounted on $dir"
umount "$dir"
dmsetup create nsheal-part --table "0 1024 linear ${node}p1 0"
check "a partition is held" is_used "${disk}p1 is held by $(basename "$(readlink -f /dev/mapper/nsheal-part)") (nsheal-part)"
dmsetup remove nsheal-part
blkpg 2

dmsetup create nsheal-linear --table "0 1024 linear $node 0"
check "held by device-mapper" is_used "held by $(basename "$(readlink -f /dev/mapper/nsheal-linear)") (nsheal-linear)"
dmsetup remove nsheal-linear
check "free without the map" is_free

loop=$(losetup -f --show "$node")
check "backing a loop device" is_used "backing ${loop#/dev/}"
losetup -d "$loop"
check "free without the loop device" is_free

# shellcheck disable=SC2046
mknod /dev/nsheal-node b $(tr : ' ' <"/sys/class/block/$disk/dev")
loop=$(losetup -f --show /dev/nsheal-node)
rm /dev/nsheal-node
check "backing a loop device by a node that is gone" is_used "backing ${loop#/dev/}"
losetup -d "$loop"

subsystem $nqn-again
again=$NVMET/subsystems/$nqn-again/namespaces/1
mkdir "$again"
echo "$node" >"$again/device_path"
check "named by the kernel's target, not enabled" is_free
echo 1 >"$again/enable"
check "exported by the kernel's target" is_used "exported by the kernel's NVMe target as $nqn-again"
unmap $nqn-again 1
check "free when it is not exported" is_free

mkswap "$node" >/dev/null
swapon "$node"
check "swap" is_used "in use as swap space"
swapoff "$node"
check "free without the swap" is_free

# With the rights of the service and no more.
mapfile -t sandbox < <(sed -n '/^CapabilityBoundingSet=/,$p' "/usr/lib/systemd/system/$UNIT" | grep '^[A-Z]')
in_sandbox() { systemd-run -q --wait --pipe "${sandbox[@]/#/-p}" "$@" "$tool" "$disk"; }
check "the service may see that nobody uses it" equal free in_sandbox
hold setpriv --reuid=65534 --regid=65534 --clear-groups sleep 1000 9<"$node"
check "the service may see another user's open file" equal "busy: opened by sleep (pid $PID)" in_sandbox
let_go
without_ptrace() { in_sandbox -p CapabilityBoundingSet= -p 'CapabilityBoundingSet=CAP_SYS_ADMIN CAP_DAC_READ_SEARCH'; }
check "without CAP_SYS_PTRACE nothing is free" \
    equal 'busy: the processes of this host cannot be seen: /proc/1/ns/pid: Permission denied' without_ptrace

check "asking made no uevent" nothing cat "$WORK/noise"
: >"$WORK/noise"
write_and_close() { : >>"/dev/$1"; }
tool=write_and_close
answer "$disk"
check "closing a writer would have made one" something cat "$WORK/noise"
tool=/run/vm/guest/inuse-tool

readable() { $tool --read "$disk"; }
check "a block can be read" equal readable readable
deaf $nqn
unmap $nqn 1
check "not when the namespace has gone at the target" equal gone readable
check "and nobody uses it still" is_free
