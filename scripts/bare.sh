#!/bin/sh
# Tries the README's two commands on a machine that has nothing else: a new Debian with Python, pip, make and git alone.
#     scripts/bare.sh bookworm [folder]     needs root and debootstrap; the folder is made, and kept for the next time
# This machine's certificates and its settings of pip and npm go along: who needs a mirror here needs it there.
set -eu

release=${1:?which Debian: bookworm or trixie}
mkdir -p "${2:-/var/tmp/postern-$release}"
root=$(cd "${2:-/var/tmp/postern-$release}" && pwd)
[ -e "$root/usr/bin/git" ] || debootstrap --variant=minbase --include=python3,python3-pip,make,git,ca-certificates \
  "$release" "$root" http://deb.debian.org/debian > "$root.log"

for file in /etc/resolv.conf /etc/hosts /etc/pip.conf "$HOME/.npmrc" /etc/ssl/certs/ca-certificates.crt; do
  [ ! -e "$file" ] || install -D "$file" "$root$file"
done
rm -rf "$root/postern"
git clone --quiet . "$root/postern"

cat > "$root/try" <<'END'
set -eu
cd /postern
make run &
gateway=$!
tries=0
until .venv/bin/python -c 'from urllib.request import urlopen; urlopen("http://127.0.0.1:8080/readyz")' 2> /dev/null; do
  tries=$((tries + 1))
  [ $tries -lt 300 ]
  sleep 1
done
echo "make run: ready after ${tries} s"
kill $gateway
wait $gateway || true
exec make test
END

# With processes and mounts of its own, as a container has them: what the tests start ends with it.
exec unshare --mount --pid --fork --kill-child sh -eu -c '
  mount --make-rprivate /
  mount --types proc proc "$1/proc"
  mount --rbind /dev "$1/dev"
  mount --types sysfs sys "$1/sys"
  exec chroot "$1" env HOME=/root PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin sh /try
' sh "$root"
