# An orchestrator drops a file; the path unit notices.
nqn=nqn.2024-01.test.nsheal:drop-in
new=$(uuid_of 2)

mask nvme-nsheal.timer
subsystem $nqn 1 2
map $nqn 1
connect $nqn 1 2
deaf $nqn
map $nqn 2
path_on
check "without help it stays hidden" always 3 no_device $new
check "nothing has run so far" equal 0 service_runs

drop_in pvc-4f1e.conf <<END
[subsystem drop-in]
nqn = $nqn
namespace = uuid=$new name=pvc-4f1e
grace = 1s
END
check "the file started the service" wait_for 20 at_least 1 service_runs
check "the device comes" wait_for 60 device $new
check "with a path through both controllers" wait_for 30 equal 2 paths_of $new

# A second file, while nothing runs: the path unit still listens.
check "the run ends" wait_for 60 service_is_idle
map $nqn 3
drop_in pvc-77aa.conf <<END
[subsystem drop-in]
nqn = $nqn
namespace = uuid=$(uuid_of 3) name=pvc-77aa
END
check "a second file brings its device too" wait_for 60 device "$(uuid_of 3)"
