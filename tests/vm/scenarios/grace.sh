# It appears by itself within the grace time: we only watched.
nqn=nqn.2024-01.test.nsheal:grace
new=$(uuid_of 2)

subsystem $nqn 1 2
map $nqn 1
connect $nqn 1 2
quiet 1
conf <<END
[subsystem grace]
nqn = $nqn
namespace = uuid=$new
grace = 15s
END
trace_on
run_service &
check "the service runs" wait_for 20 service_is_running
check "status says missing" wait_for 10 status_says $new missing
map $nqn 2
check "the kernel brings the device" wait_for 20 device $new
check "the run ends before the grace time is over" wait_for 10 service_is_idle
wait
run_service
check "no rescan" equal 0 rescans
check "status has nothing to complain about" status_exits 0
