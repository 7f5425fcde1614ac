# A burst: 300 namespaces mapped while nobody hears it. One run, one rescan of each controller.
# limit: 600
nqn=nqn.2024-01.test.nsheal:many

subsystem $nqn 1 2
map $nqn 1
connect $nqn 1 2
conf <<END
[subsystem many]
nqn = $nqn
namespace = nsid=1-301
grace = 1s
END
deaf $nqn
map_range $nqn 2 301
quiet 1
trace_on
check "without help they stay hidden" always 3 equal 0 devices_of_range 2 301
run_service
check "when the run is over all devices are there" equal 300 devices_of_range 2 301
for ctrl in $(ctrls_of $nqn); do
    check "all paths through $ctrl" wait_for 30 equal 301 paths_through $ctrl
done
check "it was one run" equal 1 service_runs
check "each controller was scanned once" equal "1 1" scans_of_all $nqn
check "the product asked for both" equal 2 rescans
check "status has nothing to complain about" status_exits 0

figure_of "status of 301 namespaces" nvme-nsheal status
figure_of_bare_reads "bare reads of nsid and wwid"
