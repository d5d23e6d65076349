package main

import "time"

// rows returns DESIGN.md's table, in its order.
func rows(c *config, s *source) []row {
	var all []row
	for _, group := range [][]row{readRows(), buildRows(), treeRows(s), smallRows(c), fileRows(c, s), winkfsRows(c)} {
		all = append(all, group...)
	}
	return all
}

func readRows() []row {
	var all []row
	for _, r := range []row{
		{name: "find+stat", work: find},
		{name: "rg", work: rg},
		{name: "tar", work: tarOut},
		{name: "git status", work: gitStatus},
	} {
		r.factor, r.opens = 1, true
		w, k := r, r
		w.name, w.state, w.budget = r.name+", warm", warm, 1.2
		k.name, k.state, k.budget = r.name+", cold", cold, 2.0
		all = append(all, w, k)
	}
	// winkfs walks the tree in the background after mounting: what those see who
	// don't leave it a second.
	return append(all, row{name: "git status, cold, at once", state: atOnce, work: gitStatus})
}

func buildRows() []row {
	return []row{
		{name: "go build", state: warm, budget: 1.15, factor: 1, opens: true, work: goBuild},
		{name: "npm install", state: settled, memory: 256 << 20, tool: "npm", budget: 1.15, factor: 1, work: npmInstall, tidy: removeInstalled},
	}
}

func treeRows(s *source) []row {
	rows := []row{
		{name: "git clone", budget: 2.5, factor: 2, work: s.gitClone, tidy: removeWork},
		{name: "untar", budget: 4, factor: 2, prepare: makeWork, work: s.untar, tidy: removeWork},
		{name: "rm -rf", budget: 4, factor: 2, prepare: s.untarFirst, work: removeTimed},
	}
	return settledWith(1<<30, rows)
}

// settledWith gives the rows the state settled.
func settledWith(memory int64, rows []row) []row {
	for i := range rows {
		rows[i].state, rows[i].memory = settled, memory
	}
	return rows
}

func smallRows(c *config) []row {
	n := int(scaled(c, 5000))
	return settledWith(256<<20, []row{
		{name: "small create..unlink, 1 thread", budget: 5, factor: 2, prepare: makeWork, work: small(n, 1), tidy: removeWork},
		{name: "small create..unlink, 2 threads", budget: 8, factor: 2, prepare: makeWork, work: small(n, 2), tidy: removeWork},
		{name: "temp + fsync + rename", budget: 1.4, factor: 1, prepare: makeWork, work: replace(int(scaled(c, 200))), tidy: removeWork},
		{name: "in place 4k + fsync", budget: 1.4, factor: 1, prepare: makeWork, work: inPlace(int(scaled(c, 200))), tidy: removeWork},
	})
}

func fileRows(c *config, s *source) []row {
	mib := func(n int64) int64 { return scaled(c, n) << 20 }
	writes := settledWith(mib(1536), []row{
		{name: "sequential write, 1M blocks", budget: 2, factor: 1, prepare: makeWork, work: writeBlocks(mib(512), 1<<20, false), tidy: removeWork},
		{name: "sequential write, 4k blocks", budget: 6, factor: 1, prepare: makeWork, work: writeBlocks(mib(128), 4<<10, false), tidy: removeWork},
		{name: "random write, 4k blocks", budget: 4.5, factor: 1, prepare: makeWork, work: writeBlocks(mib(128), 4<<10, true), tidy: removeWork},
	})
	return append(writes, []row{
		{name: "sequential read, warm", state: warm, budget: 1.4, factor: 1, work: s.readBlocks(1<<20, false)},
		{name: "random read 4k, warm", state: warm, budget: 1.4, factor: 1, work: s.readBlocks(4<<10, true)},
		{name: "mmap read, warm", state: warm, budget: 6, factor: 1, work: s.mmapRead},
		{name: "first 4k write to a large file", state: anew, atMost: 5 * time.Millisecond, factor: 1, work: firstWrite, only: []string{winkfs, overlay, fuseovl}},
	}...)
}

func winkfsRows(c *config) []row {
	f := &forker{c: c}
	return []row{
		{name: "mount", atMost: 50 * time.Millisecond, work: mountTime, only: []string{winkfs, overlay, fuseovl}},
		{name: "exec of true, p50", work: c.execTrue(0.5), only: []string{native, winkfs}, atMost: 12 * time.Millisecond},
		{name: "exec of true, p95", work: c.execTrue(0.95), only: []string{native, winkfs}, atMost: 30 * time.Millisecond},
		{name: "rollback of 10,000 files", prepare: c.changeMany, work: c.takeBack("rollback"), only: []string{winkfs}, atMost: 500 * time.Millisecond},
		{name: "undo of 10,000 files", prepare: c.changeMany, work: c.takeBack("undo"), only: []string{winkfs}, atMost: 500 * time.Millisecond},
		{name: "fork with 100,000 changed files", prepare: f.prepare, work: f.fork, only: []string{winkfs}, atMost: 200 * time.Millisecond},
	}
}
