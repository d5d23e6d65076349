package workspace

import (
	"cmp"
	"context"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/winkfs/winkfs/fs/dev"
)

// Resume returns the workspace that goes on when this configuration is mounted
// there: the one of the same name, or the one that was mounted there before
// over the same sources. nil means that a new one is to be made. explicit says
// that the configuration was read from a file; one that differs from the frozen
// one is then refused, as it would not take effect.
func (r *Registry) Resume(cfg *Config, mountpoint string, explicit bool) (*Entry, error) {
	all, err := r.List()
	if err != nil {
		return nil, err
	}
	for _, e := range slices.Backward(all) {
		if e.Config == nil || e.Config.Ephemeral != cfg.Ephemeral {
			continue
		}
		named := cfg.Name != "" && e.Name() == cfg.Name
		here := e.Mountpoint() == mountpoint && (cfg.Name == "" || named)
		if !named && !here {
			continue
		}
		if !sameSources(e.Config.Sources, cfg.Sources) {
			if named {
				return nil, Fail(CodeUsage, "mount %s: a workspace of that name exists over %s", cfg.Name, sourcesText(e.Config.Sources)).
					Hinted("choose another name, or go on with it: winkfs mount -w %s %s", cfg.Name, mountpoint)
			}
			continue
		}
		return e, e.sameConfig(cfg, explicit)
	}
	return nil, nil
}

// sameSources compares the kept sources with those asked for; none asked for
// means whichever there are.
func sameSources(kept, asked []Source) bool {
	if len(asked) == 0 {
		return true
	}
	return slices.EqualFunc(kept, asked, func(a, b Source) bool { return slices.EqualFunc(a.dirs(), b.dirs(), sameDir) })
}

// sameDir compares a kept directory with one that was asked for.
func sameDir(kept, asked string) bool {
	abs, err := filepath.Abs(asked)
	return err == nil && kept == resolved(abs)
}

func sourcesText(sources []Source) string {
	hosts := make([]string, len(sources))
	for i := range sources {
		hosts[i] = strings.Join(sources[i].dirs(), " over ")
	}
	return strings.Join(hosts, ", ")
}

// ResumeOnly returns the one workspace of the state root, which goes on wherever
// it is mounted; nil if there is none. Over other sources it is refused, since
// its changes would not fit.
func (r *Registry) ResumeOnly(cfg *Config, explicit bool) (*Entry, error) {
	all, err := r.List()
	if err != nil || len(all) == 0 {
		return nil, err
	}
	if len(all) > 1 {
		return nil, Fail(CodeUsage, "mount from %s: it holds several workspaces", r.root).At(r.root).
			Hinted("name one by name=; %s", describe(all))
	}
	e := all[0]
	if err := usable(e); err != nil {
		return nil, err
	}
	if !sameSources(e.Config.Sources, cfg.Sources) {
		return nil, Fail(CodeUsage, "mount from %s: the workspace in it is over %s, not over %s", r.root, sourcesText(e.Config.Sources), sourcesText(cfg.Sources)).
			At(r.root).Hinted("name the same lower directories in the same order, or another upper directory")
	}
	return e, e.sameConfig(cfg, explicit)
}

// sameConfig refuses a configuration that would not take effect, since the
// workspace's own was frozen when it was made.
func (e *Entry) sameConfig(cfg *Config, explicit bool) error {
	asked := *cfg
	if asked.Profile == ProfileDefault {
		asked.Profile = ""
	}
	asked.Audit = cmp.Or(asked.Audit, AuditChanges)
	differs := cfg.Profile != "" && asked.Profile != e.Config.Profile
	if explicit {
		differs = asked.Profile != e.Config.Profile || asked.Audit != cmp.Or(e.Config.Audit, AuditChanges) || !reflect.DeepEqual(e.Config.Exec, cfg.Exec)
	}
	if !differs {
		return nil
	}
	return Fail(CodeUsage, "mount workspace %s: its configuration was frozen when it was made, and differs from the one given", e.ID).
		Hinted("go on with the frozen one by winkfs mount -w %s MOUNTPOINT, or make another workspace by --name", e.ID)
}

// endTime is how long the daemon of a workspace that is not mounted any more may
// take to write down the rest.
const endTime = 30 * time.Second

// AwaitEnd waits for the daemon of a workspace that somebody has unmounted
// behind its back, as umount(8) does: it ends by itself. Nothing happens if the
// workspace is mounted. The entry's Live says what is so in the end.
func AwaitEnd(ctx context.Context, e *Entry) error {
	ctx, cancel := context.WithTimeout(ctx, endTime)
	defer cancel()
	for e.Live && !e.Runtime.Private {
		mounts, err := dev.Mounts()
		if err != nil {
			return err
		}
		if slices.ContainsFunc(mounts, func(m dev.MountEntry) bool { return m.Source == "winkfs:"+e.ID }) {
			return nil
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(5 * time.Millisecond):
		}
		e.Live = socketAnswers(e.Dir)
	}
	return nil
}
