package chaos_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/event"
	"github.com/stint-go/stint/internal/proof/chaos"
	"github.com/stint-go/stint/internal/proof/pace"
)

// A real disk that somebody else fills to the last byte while a fleet works on it.
func TestWorkOnAFullDiskStandsStillLosesNothingAndGoesOnWhenThereIsRoom(t *testing.T) {
	t.Parallel()
	times := 1
	if long() {
		times = 30
	}
	disk := t.TempDir()
	room := 20 + 4*times // MiB: each time the file grows by two
	if err := syscall.Mount("stint", disk, "tmpfs", 0, fmt.Sprintf("size=%dm", room)); err != nil {
		t.Skipf("a disk to be filled cannot be mounted here: %v", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(disk, syscall.MNT_DETACH) })
	w := newFileWorld(t, disk)
	workers := w.keep(2)
	for _, k := range workers {
		w.Await(k.Process().Name, event.EventJoined, 1, time.Minute)
	}
	stop := goOn(t, 2, every(50*time.Millisecond, w.client))
	for range times {
		time.Sleep(time.Second)
		w.fill(disk, workers)
	}
	stop()
	w.end(workers, time.Minute)
}

// fill keeps the disk full for a while, until it has been met, and looks at what
// programs are told.
func (w *fileWorld) fill(disk string, workers []*chaos.Keeper) {
	w.t.Helper()
	const long = 2 * time.Second
	troubles, lines := w.troubles(workers)
	ballast := filepath.Join(disk, "ballast")
	f, err := os.Create(ballast)
	if err != nil {
		w.t.Fatal(err)
	}
	said, began := 0, time.Now()
	met := func() bool { now, _ := w.troubles(workers); return said > 0 && now > troubles }
	for ; time.Since(began) < long || !met() && time.Since(began) < time.Minute; time.Sleep(20 * time.Millisecond) {
		for size := 64 << 10; size > 0; { // whatever a checkpoint gave back
			if _, err := f.Write(make([]byte, size)); err != nil {
				size /= 2
			}
		}
		switch err := w.one(); {
		case err == nil: // a checkpoint had made room for one
		case !strings.Contains(err.Error(), "the disk is full") || errors.Is(err, stint.ErrUnstorable):
			w.t.Errorf("an enqueue on a full disk says: %v", err)
		default:
			said++
		}
	}
	full := time.Since(began)
	now, more := w.troubles(workers)
	if err := errors.Join(f.Close(), os.Remove(ballast)); err != nil {
		w.t.Fatal(err)
	}
	took := w.recovers()
	w.t.Logf("full for %v: %d enqueues were refused; the workers told of %d troubles in %d lines; work resumed after %v", full, said, now-troubles, more-lines, took)
	if took > pace.Of(5*time.Second) {
		w.t.Errorf("work resumed %v after there was room, more than 5s", took)
	}
	if said == 0 || now == troubles {
		w.t.Error("the disk was not full")
	}
	if limit := len(workers) * 20 * int(full/time.Second); more-lines > limit {
		w.t.Errorf("the logs grew by %d lines, more than %d", more-lines, limit)
	}
}

// one enqueues a job.
func (w *fileWorld) one() error {
	w.t.Helper()
	w.ones++
	key := fmt.Sprintf("one-%d", w.ones)
	job, err := chaos.Kind.New(chaos.Args{Key: key})
	if err != nil {
		w.t.Fatal(err)
	}
	intent := w.History.Intend(key)
	ids, err := stint.NewClient(w.ground.Store).EnqueueMany(w.t.Context(), []stint.NewJob{job})
	if err != nil {
		intent.Unknown()
		return err
	}
	intent.Committed(int64(ids[0]))
	return nil
}

// troubles counts what workers that live told of.
func (w *fileWorld) troubles(workers []*chaos.Keeper) (troubles, lines int) {
	w.t.Helper()
	for _, k := range workers {
		events := w.Events(k.Process().Name)
		troubles += chaos.Count(events, event.EventTrouble)
		lines += len(events)
	}
	return troubles, lines
}
