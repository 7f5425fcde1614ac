# removals = dead: what the storage has taken away for good does not stop the healing of the others, although somebody
# still holds it. But only if it is really dead.
# limit: 500
. /run/vm/guest/lib-faulty.sh

kernels=nqn.2024-01.test.nsheal:dead
lying=nqn.2024-01.test.nsheal:lying
mnt=$WORK/mnt
mkdir "$mnt"

subsystem $kernels 1 2
map $kernels 1
map $kernels 2
connect $kernels 1 2
conf <<END
[defaults]
removals = dead
grace = 3s
[subsystem dead]
nqn = $kernels
namespace = nsid=3
END
disk=$(device_of "uuid.$(uuid_of 2)")
mkfs.ext4 -q -F "/dev/$disk" 8M
mount "/dev/$disk" "$mnt"
deaf $kernels
unmap $kernels 2
map $kernels 3
quiet 1
trace_on
check "dead: one heal" nvme-nsheal heal
check "brings the missed one" device "$(uuid_of 3)"
check "although the dead one is mounted" mountpoint -q "$mnt"
check "that one is gone" no_device "$(uuid_of 2)"
check "its sibling was left alone" device "$(uuid_of 1)"
umount -l "$mnt"

# The controller says that it is gone, by its list and by CNS 00h, yet it can be read.
faulty_target $lying 3
faulty $lying map 11-12
faulty_connect $lying 3
conf <<END
[defaults]
removals = dead
grace = 1s
[subsystem lying]
nqn = $lying
namespace = nsid=13
END
disk=$(device_of "uuid.$(uuid_of 12)")
mkfs.ext4 -q -F "/dev/$disk" 8M
mount "/dev/$disk" "$mnt"
echo there >"$mnt/file"
sync -f "$mnt"
faulty $lying map 13 silent
faulty $lying fault identify cns=2 without=12
faulty $lying fault identify cns=0 nsid=12 zeros
quiet 1
trace_on
for run in 1 2 3; do nvme-nsheal heal; sleep 1.2; done
check "it can still be read: nothing is rescanned" equal 0 rescans
check "blocked" status_says 'NSID 13|nsid=13' blocked
check "by whom" something sh -c "nvme-nsheal status | tr -s ' \n' ' ' | grep -F 'mounted on'"
echo 3 >/proc/sys/vm/drop_caches
check "the mount and its files are there" equal there cat "$mnt/file"
umount "$mnt"
check "nobody uses it: heal" nvme-nsheal heal
check "brings the missed one as well" device "$(uuid_of 13)"
