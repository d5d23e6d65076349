#!/bin/bash
# PostgreSQL: initdb, pgbench, kill -9 in the middle of it, recovery, and a check
# that every committed transfer is still there. Needs Debian's postgresql and,
# for root, a user to run it as ($REAL_USER, nobody by default).
. "$(dirname "$0")/lib.sh"
bin=$(ls -d /usr/lib/postgresql/*/bin | tail -1)
seconds=${REAL_SECONDS:-60}
as=()
if [ "$(id -u)" = 0 ]; then
	need setpriv
	user=${REAL_USER:-nobody}
	as=(setpriv --reuid "$(id -u "$user")" --regid "$(id -g "$user")" --clear-groups env HOME=/ LC_ALL=C)
fi

run_postgres() {
	local dir=$1/pg results=$2 sock pid
	sock=$(mktemp -d /tmp/real-pg.XXXXXX)
	mkdir -p "$dir"
	[ "$(id -u)" != 0 ] || chown "$user" "$dir" "$sock"
	sql() { "${as[@]}" "$bin/psql" -h "$sock" -U me -d postgres -XAtc "$1"; }
	start() { "${as[@]}" "$bin/pg_ctl" -D "$dir/data" -w -t 120 -l "$dir/log" -o "-k $sock -c listen_addresses=" start; }
	step() {
		local name=$1
		shift
		if "$@" >&2; then echo "$name ok" >>"$results"; else echo "$name FAILED" >>"$results"; fi
	}
	: >"$results"
	step initdb "${as[@]}" "$bin/initdb" -D "$dir/data" -U me --auth trust --no-locale
	step start start
	step pgbench-init "${as[@]}" "$bin/pgbench" -h "$sock" -U me -i -s 5 postgres
	# The history table has a row for each committed transfer.
	("${as[@]}" "$bin/pgbench" -h "$sock" -U me -c 4 -T "$seconds" postgres; true) &
	sleep $((seconds / 2))
	sql 'select count(*) from pgbench_history' >"$2.before"
	pid=$(head -1 "$dir/data/postmaster.pid")
	kill -9 "$pid" $(pgrep -P "$pid") 2>/dev/null || true
	wait $! || true
	for _ in $(seq 300); do kill -0 "$pid" 2>/dev/null || break; sleep 0.1; done
	step recover start
	step kept test "$(sql 'select count(*) from pgbench_history')" -ge "$(cat "$2.before")"
	step balanced test "$(sql 'select (select sum(abalance) from pgbench_accounts) = (select sum(delta) from pgbench_history)')" = t
	step pgbench "${as[@]}" "$bin/pgbench" -h "$sock" -U me -c 4 -T "$seconds" postgres
	step amcheck "${as[@]}" "$bin/pg_amcheck" -h "$sock" -U me --install-missing --heapallindexed postgres
	step stop "${as[@]}" "$bin/pg_ctl" -D "$dir/data" -w -m fast stop
	rm -rf "$sock"
}

both postgres run_postgres
