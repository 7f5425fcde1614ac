# A thousand events from eight controllers: none lost, one run at a time, few runs, and the last change is seen.
# limit: 500
nqn=nqn.2024-01.test.nsheal:burst

subsystem $nqn 1 2 3 4 5 6 7 8
map $nqn 1
connect $nqn 1 2 3 4 5 6 7 8
conf <<END
[subsystem burst]
nqn = $nqn
namespace = nsid=1-2
grace = 1s
END
mask nvme-nsheal.path nvme-nsheal.timer
! product_installed || wait_for 60 service_is_idle
deaf $nqn
quiet 1
uevents() { wc -l <"$WORK/uevents"; }
udevadm monitor --udev --subsystem-match=nvme 2>&1 | grep --line-buffered -E '^UDEV .* add ' >"$WORK/uevents" &
sleep 1
trace_on
before=$(service_runs)
python3 - <<'END'
import glob
files = [open(name, "w", buffering=1) for name in glob.glob("/sys/class/nvme/nvme*/uevent")]
for turn in range(125):
    for file in files:
        file.write("add\n")
END
map $nqn 2
check "without help it stays hidden" always 1 no_device "$(uuid_of 2)"
check "a thousand events were worked on" wait_for 240 at_least 1000 uevents
check "the last change is seen" wait_for 60 device "$(uuid_of 2)"
check "the last run ends" wait_for 60 service_is_idle
runs=$(($(service_runs) - before))
say "# figure: $runs runs for $(uevents) events"
check "runs were far fewer" eval "[ $runs -ge 1 ] && [ $runs -le 100 ]"
check "each controller was asked for one rescan" equal 8 rescans
# "Starting" and "Finished" take turns
overlaps() {
    journal_of_manager -o json --output-fields=MESSAGE_ID | grep -oE '7d4958e842da4a758f6c1cdc7b36dcc5|39f53479d3a045ac8e11786248231fbf' |
        uniq -d | wc -l
}
check "never two at once" equal 0 overlaps
check "no trigger is left" nothing sh -c 'ls -A /run/nvme-nsheal | grep -i trigger || true'
check_not "the service has not failed" service_failed
check "status has nothing to complain about" status_exits 0
