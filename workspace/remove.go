package workspace

import (
	"errors"
	"fmt"
	iofs "io/fs"
	"os"
	"path/filepath"

	"github.com/winkfs/winkfs/journal"
)

// Remove deletes a workspace that nobody uses, changes and all. Its forks keep
// what they share with it.
func Remove(e *Entry) error {
	if socketAnswers(e.Dir) {
		return Fail(CodeFailure, "remove workspace %s: it is mounted", e.ID).Hinted("unmount it first: winkfs umount %s", e.ID)
	}
	if _, err := Heal(e.Mountpoint()); err != nil {
		return err
	}
	release, err := journal.Lock(e.Dir, lockWait)
	if err != nil && !errors.Is(err, iofs.ErrNotExist) {
		return journalError(e, err)
	}
	if err == nil {
		defer release()
	}
	r := NewRegistry(filepath.Dir(e.Dir))
	unlock, err := r.lock()
	if err != nil {
		return err
	}
	b := &birth{r: r, dir: e.Dir}
	err = b.hold()
	if err == nil {
		// Without its configuration it doesn't count as a workspace any more,
		// whatever happens to the rest.
		err = os.Remove(filepath.Join(e.Dir, configFile))
	}
	unlock()
	if err != nil && !errors.Is(err, iofs.ErrNotExist) {
		return fmt.Errorf("remove workspace %s: %w", e.ID, err)
	}
	if err := b.abandon(); err != nil {
		return fmt.Errorf("remove workspace %s: %w", e.ID, err)
	}
	return nil
}
