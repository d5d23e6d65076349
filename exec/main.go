package exec

import (
	"os"
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// The stages are known by argv[0] alone: everything else comes over the link.
const (
	stage1Name = "winkfs: init"
	stage2Name = "winkfs: start"
	mapperName = "winkfs: idmap" // holds a user namespace until it is killed
)

// linkFD is where a stage finds its end of the link; mountFD where stage 1
// finds the id-mapped clone of the mount, if there is one.
const (
	linkFD  = 3
	mountFD = 4
)

// selfExe is the running program whatever became of its path. It leads there
// through the process, not through the root directory, and so works inside too.
const selfExe = "/proc/self/exe"

// stageEnv keeps the runtime of a stage from reading the cgroup files, which
// costs time and leaves descriptors open that the stage would close.
var stageEnv = []string{"GODEBUG=containermaxprocs=0,updatemaxprocs=0", "GOMAXPROCS=2"}

// init saves a stage the work of the packages that are initialised after this
// one, most of the program's: about a millisecond each time.
func init() { Main() }

// Main takes over when the program was started as a stage of a sandbox, and
// then never returns. It must be the first call of main: a stage has nothing of
// what the rest of the program expects. Where this package is initialised as
// part of the program, that has happened before main begins.
func Main() {
	if len(os.Args) != 1 || len(os.Args[0]) < 8 {
		return
	}
	switch os.Args[0] {
	case stage1Name:
		runtime.LockOSThread()
		stage1()
	case stage2Name:
		runtime.LockOSThread()
		stage2()
	case mapperName:
		time.Sleep(time.Hour)
	default:
		return
	}
	unix.Exit(ExitSandbox)
}
