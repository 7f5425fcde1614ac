# udev alone: a controller comes back, and within the grace time a namespace is mapped that nobody hears of.
nqn=nqn.2024-01.test.nsheal:reset
new=$(uuid_of 2)

mask nvme-nsheal.timer nvme-nsheal.path
subsystem $nqn 1 2
map $nqn 1
connect $nqn 1 2
conf <<END
[subsystem reset]
nqn = $nqn
namespace = uuid=$new
grace = 15s
END
check "nothing has run so far" equal 0 service_runs

trace_on
nvme reset "/dev/$(ctrls_of $nqn | head -n1)"
check "the controller is live again" wait_for 30 all_ctrls_are live $nqn
quiet 1
deaf $nqn
map $nqn 2
check "the event started the service" wait_for 10 at_least 1 service_runs
check "within the grace time nothing is done" always 3 no_device $new
check "the device comes" wait_for 60 device $new
check "with a path through both controllers" wait_for 30 equal 2 paths_of $new
check "the product asked for both" equal 2 rescans
check "the run ends" wait_for 60 service_is_idle
