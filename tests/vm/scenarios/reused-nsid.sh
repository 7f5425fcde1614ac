# The storage uses an NSID again for another namespace, silently. The kernel compares identifiers: one scan takes the old
# device away, the next one brings the new.
nqn=nqn.2024-01.test.nsheal:reused
old=$(uuid_of 5)
new=$(uuid_of 55)

subsystem $nqn 1 2
map $nqn 1
map $nqn 5
connect $nqn 1 2
conf <<END
[subsystem reused]
nqn = $nqn
namespace = nsid=5 uuid=$new
END
check "the old one is there" device $old
check "as long as the storage has the old one too: conflict" probe_says $new conflict
nvme-nsheal heal --now
check "and no rescan" equal 0 rescans
check "the old one stays" device $old

deaf $nqn
unmap $nqn 5
map $nqn 5 uuid=$new
quiet 1
trace_on
check "without help the old device stays" always 3 device $old
check "dry-run says that it would go" something sh -c "nvme-nsheal heal --now --dry-run | grep -i 'removes /dev/'"
check "and nothing happened" equal 0 rescans
check "one heal" nvme-nsheal heal --now
check "brings the new device" device $new
check "with a path through both controllers" equal 2 paths_of $new
check "the old one is gone" no_device $old
check "two rounds on each of two controllers" equal 4 rescans
check "its sibling was left alone" device "$(uuid_of 1)"
check "status has nothing to complain about" status_exits 0

# by its identity alone, nothing missing by number
third=$(uuid_of 77)
conf <<END
[subsystem reused]
nqn = $nqn
namespace = uuid=$third
END
unmap $nqn 5
map $nqn 5 uuid=$third
check "expected by identity alone: one heal" nvme-nsheal heal --now
check "brings it as well" device $third
check "with a path through both controllers again" equal 2 paths_of $third
