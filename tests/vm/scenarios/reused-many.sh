# An NSID that the storage uses again hides behind the old device: among a hundred others, expected by UUID alone, with
# nothing missing by number, it is found by its identity and healed in one run of two rounds.
# limit: 500
nqn=nqn.2024-01.test.nsheal:reused-many
old=$(uuid_of 57)
new=$(uuid_of 1057)

subsystem $nqn 1 2
map_range $nqn 1 100
connect $nqn 1 2
conf <<END
[subsystem many]
nqn = $nqn
namespace = uuid=$new
namespace = nsid=1-100
grace = 1s
END
deaf $nqn
unmap $nqn 57
map $nqn 57 uuid=$new
quiet 1
trace_on
check "without help it stays hidden" always 3 no_device "$new"
check "one heal" nvme-nsheal heal
check "brings it" device "$new"
check "with a path through both controllers" equal 2 paths_of "$new"
check "the old one is gone" no_device "$old"
check "two rounds on each of two controllers" equal 4 rescans
check "the others were left alone" equal 99 devices_of_range 1 100
check "status has nothing to complain about" status_exits 0

# expected by the old UUID: what is there is somebody else's
conf <<END
[subsystem many]
nqn = $nqn
namespace = nsid=57 uuid=$old
grace = 1s
END
trace_on
check "expected by the old identity: heal" nvme-nsheal heal
check "does nothing" equal 0 rescans
check "conflict" status_says 'nsid=57|NSID 57' conflict
check "the new one stays" device "$new"
