# What ./bootstrap demo shows. The same verbs as in scenarios/; tell prints a line of the timeline.
nqn=nqn.2014-08.org.nvmexpress:uuid:5f0c2d1e-0b1f-4f2a-9d3c-demo
new=$(uuid_of 2)

show() { while IFS= read -r line; do tell "    $line"; done; }

subsystem $nqn 1 2
map $nqn 1
connect $nqn 1 2
tell "This host is connected to a subsystem through two controllers, $(ctrls_of $nqn | xargs echo)."
tell "One namespace is mapped, and the kernel made its device: /dev/$(device_of "uuid.$(uuid_of 1)")."

deaf $nqn
tell "Both controllers lose the next notice (here: switched off, as a busy array loses one)."
map $nqn 2
tell "The storage side maps a second namespace, $new."
check "the namespace stays lost without nvme-nsheal" always 20 no_device $new
tell "20 s later there is still no device: the kernel does not know, and nobody will tell it."

conf <<END
[subsystem demo]
nqn = $nqn
namespace = nsid=1
namespace = uuid=$new name=lost-volume
END
tell "/etc/nvme-nsheal.conf says what this host should have:"
show <$CONF
tell "nvme-nsheal status:"
{ nvme-nsheal status || :; } 2>&1 | show
check "status sees the gap" status_exits 1

timer_on >/dev/null 2>&1
path_on >/dev/null 2>&1
start=$(now)
tell "nvme-nsheal is switched on: systemctl enable --now nvme-nsheal.timer nvme-nsheal.path"
check "the device comes" wait_for 90 device $new
tell "$(since "$start") later the device is there: /dev/$(device_of "uuid.$new")."
check "with paths through both controllers" wait_for 30 equal 2 paths_of $new
tell "It has paths through $(paths_of $new) controllers."
wait_for 60 service_is_idle
tell "What it said in the journal:"
journal | show
tell "nvme-nsheal status:"
{ nvme-nsheal status --all 2>/dev/null || nvme-nsheal status; } 2>&1 | show
check "status has nothing to complain about" status_exits 0
