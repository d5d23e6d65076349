#!/bin/bash
# CPython's own tests of what touches files, with the interpreter that $PYTHON
# names (it needs the test package: Debian's libpython3-testsuite, or pyenv). The
# tests run with their temporary directories and working directory in the tested
# place.
. "$(dirname "$0")/lib.sh"

python=${PYTHON:-python3}
"$python" -c 'import test.regrtest, test.test_os' || { echo "$python has no test package: libpython3-testsuite" >&2; exit 2; }
modules=("${@:-}")
[ -n "${modules[0]}" ] || modules=(test_os test_shutil test_tempfile test_posix test_posixpath test_mmap test_fcntl test_zipfile
	test_tarfile test_sqlite3 test_pathlib test_glob test_file test_fileio test_io test_largefile test_mailbox test_dbm_dumb
	test_shelve test_filecmp test_fileinput test_stat test_import test_compileall test_py_compile test_zipimport test_ioctl)

# A module that the interpreter does not have gives the same verdict twice.
run_python() {
	local dir=$1 results=$2 m
	for m in "${modules[@]}"; do
		(cd "$dir" && TMPDIR="$dir" timeout "${REAL_TIMEOUT:-600}" "$python" -m unittest -v "test.$m" 2>&1) |
			sed -nE 's/^(test[A-Za-z0-9_]*) \(([^)]*)\).* \.\.\. (ok|FAIL|ERROR|skipped|expected failure).*/\2.\1 \3/p; s/^(FAIL|ERROR): (test[A-Za-z0-9_]*) \(([^)]*)\).*/\3.\2 \1/p' |
			sort -u | sed "s/^/$m /"
	done >"$results"
}

both python run_python
