# udev alone: a disk of a configured subsystem goes with notice, and is mapped again within the grace time without.
nqn=nqn.2024-01.test.nsheal:removal
lost=$(uuid_of 2)

mask nvme-nsheal.timer nvme-nsheal.path
subsystem $nqn 1 2
map $nqn 1
map $nqn 2
connect $nqn 1 2
conf <<END
[subsystem removal]
nqn = $nqn
namespace = uuid=$lost
grace = 15s
END
check "nothing has run so far" equal 0 service_runs

unmap $nqn 2
check "the host removes the device" wait_for 30 no_device $lost
check "the removal started the service" wait_for 20 at_least 1 service_runs
quiet 1
deaf $nqn
trace_on
map $nqn 2
check "within the grace time nothing is done" always 3 no_device $lost
check "the device comes back" wait_for 60 device $lost
check "with a path through both controllers" wait_for 30 equal 2 paths_of $lost
check "the product asked for both" equal 2 rescans
check "the run ends" wait_for 60 service_is_idle
