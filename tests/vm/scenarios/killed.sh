# SIGKILL at any moment of a healing, of heal and of its children: the next run ends healed, no lock and no record stands
# in its way.
# limit: 1500
nqn=nqn.2024-01.test.nsheal:killed
moments=50

subsystem $nqn 1 2
map $nqn 1
connect $nqn 1 2
conf <<END
[subsystem killed]
nqn = $nqn
namespace = nsid=2-51
grace = 0s
END
mask nvme-nsheal.path nvme-nsheal.timer $UNIT

hide() {
    deaf $nqn
    map_range $nqn 2 51
}
# away: the storage takes them back, and all that was remembered of them is forgotten by a run without anything missing
away() {
    hear $nqn
    local nsid
    for ((nsid = 2; nsid <= 51; nsid++)); do echo 0 >$NVMET/subsystems/$nqn/namespaces/$nsid/enable; done
    seq -f "$NVMET/subsystems/$nqn/namespaces/%g" 2 51 | xargs rmdir
    wait_for 60 equal 0 devices_of_range 2 51
}

hide
check "without help they stay hidden" always 3 equal 0 devices_of_range 2 51
start=$(now)
check "heal, not killed" nvme-nsheal heal
whole=$(awk -v a="$start" '{ print $1 - a }' /proc/uptime)
say "# figure: a whole run takes $whole s"
check "brings all" equal 50 devices_of_range 2 51

complaints=$WORK/complaints
: >"$complaints"
healed=0 killed=0 partly=0
for ((moment = 1; moment <= moments; moment++)); do
    away
    hide
    setsid nvme-nsheal heal >/dev/null 2>&1 &
    victim=$!
    sleep "$(awk -v n=$moment -v all=$moments -v t="$whole" -v r=$RANDOM 'BEGIN { print t * (n - 1 + r / 32768) / all }')"
    # the whole group: heal and those of its children that it leads
    kill -KILL -- -$victim 2>/dev/null && killed=$((killed + 1))
    pkill -KILL -x nvme-nsheal-ask || :
    wait $victim 2>/dev/null || :
    there=$(devices_of_range 2 51)
    if [ "$there" -gt 0 ] && [ "$there" -lt 50 ]; then partly=$((partly + 1)); fi
    nvme-nsheal heal >"$WORK/next" 2>&1 || echo "moment $moment: exit code $?" >>"$complaints"
    sed "s/^/moment $moment: /" "$WORK/next" | grep -iE 'record|lock|another|cannot|trouble' >>"$complaints" || :
    if [ "$(devices_of_range 2 51)" = 50 ]; then
        healed=$((healed + 1))
    else
        sed "s/^/moment $moment: not healed: /" "$WORK/next" >>"$complaints"
    fi
done
say "# figure: $killed killed while they ran, $partly of them with some of the devices there"
check "most of them were killed at work" at_least $((moments * 3 / 4)) echo $killed
check "after each the next run ended healed" equal $moments echo $healed
check "and had nothing to say about records or locks" nothing cat "$complaints"
check "status has nothing to complain about" status_exits 0
check "nothing half-written is left" nothing sh -c "ls -A /run/nvme-nsheal | grep -i -E 'tmp|new|~' || true"
check "nobody is left" nothing sh -c 'ps -eo comm= | grep ^nvme-nsheal || true'
check "the sibling was never touched" device "$(uuid_of 1)"
