# Expected by NGUID, written as another program prints it. This one has no UUID.
nqn=nqn.2024-01.test.nsheal:nguid
nguid=$(nguid_of 2)

subsystem $nqn 1 2
map $nqn 1
connect $nqn 1 2
conf <<END
[subsystem nguid]
nqn = $nqn
namespace = nguid=${nguid^^}
grace = 1s
END
deaf $nqn
map $nqn 2 nguid=$nguid uuid=00000000-0000-0000-0000-000000000000
check "without help it stays hidden" always 3 nothing device_of eui.$nguid
run_service
check "the device is there" wait_for 30 something device_of eui.$nguid
check "status has nothing to complain about" status_exits 0
