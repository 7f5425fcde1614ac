# A rescan would take away a device that the storage does not list any more: not while somebody uses it.
nqn=nqn.2024-01.test.nsheal:removal
gone=$(uuid_of 2)
new=$(uuid_of 3)

subsystem $nqn 1 2
map $nqn 1
map $nqn 2
connect $nqn 1 2
conf <<END
[subsystem removal]
nqn = $nqn
namespace = uuid=$new
END
disk=$(device_of "uuid.$gone")
deaf $nqn
unmap $nqn 2
map $nqn 3
quiet 1
trace_on

# somebody has it open: reading fails by now, but who has it open has it open
sleep 1000 3<"/dev/$disk" &
user=$!
check "in use: heal ends well all the same" nvme-nsheal heal --now
check "blocked: nothing is rescanned" equal 0 rescans
check "the device stays" device $gone
check "the missed one is not there" no_device $new
check "status says what blocks" something sh -c "nvme-nsheal status | grep -F /dev/$disk"
check "and who" something sh -c "nvme-nsheal status | tr '\n' ' ' | grep -E 'pid +$user'"
check "and exits with 1" status_exits 1
check "udev hears nothing of being asked" nothing sh -c "
    timeout 6 udevadm monitor --kernel --udev --subsystem-match=block --subsystem-match=nvme >/run/monitor &
    sleep 1; nvme-nsheal heal --now >/dev/null 2>&1; wait; grep -E '^(KERNEL|UDEV) *\[' /run/monitor || true"
check "with removals = never too" nvme-nsheal heal --now --removals=never
check "nothing is rescanned" equal 0 rescans

kill $user
wait $user || :
check "no longer in use: heal" nvme-nsheal heal --now
check "brings the missed one" device $new
check "with a path through both controllers" equal 2 paths_of $new
check "what the storage does not have is gone" no_device $gone
check "its sibling was left alone" device "$(uuid_of 1)"
check "two rescans" equal 2 rescans

# and the administrator who knows better
unmap $nqn 3
map $nqn 4
disk=$(device_of "uuid.$new")
conf <<END
[subsystem removal]
nqn = $nqn
namespace = uuid=$(uuid_of 4)
END
trace_on
sleep 1000 3<"/dev/$disk" &
user=$!
check "in use again: blocked" nvme-nsheal heal --now
check "nothing is rescanned again" equal 0 rescans
check "--removals=always goes ahead" nvme-nsheal heal --now --removals=always
check "and brings it" device "$(uuid_of 4)"
kill $user
wait $user || :
