package powerloss

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
)

// inode is a file, whatever its name.
type inode struct {
	synced  []byte   // what is on the disk
	pending []change // since then, in their order; any part of it may be on the disk
	size    int64    // as programs see it
}

// change is a write, or if it has no data a cut at an offset.
type change struct {
	at   int64
	data []byte
}

func (n *inode) write(p []byte, at int64) {
	n.pending = append(n.pending, change{at, slices.Clone(p)})
	n.size = max(n.size, at+int64(len(p)))
}

func (n *inode) truncate(size int64) {
	n.pending = append(n.pending, change{at: size})
	n.size = size
}

func (n *inode) sync() { n.synced, n.pending = n.all(), nil }

// all is the file with all that is pending.
func (n *inode) all() []byte {
	for _, c := range n.pending {
		n.synced = c.apply(n.synced)
	}
	return n.synced
}

func (c change) apply(to []byte) []byte {
	if c.data == nil {
		return resized(to, int(c.at))
	}
	to = resized(to, max(len(to), int(c.at)+len(c.data)))
	copy(to[c.at:], c.data)
	return to
}

// resized is cut, or filled up with zeros.
func resized(b []byte, size int) []byte {
	if size <= len(b) {
		return b[:size]
	}
	return append(b, make([]byte, size-len(b))...)
}

// some is the file with some of the pending changes, each as a whole.
func (n *inode) some(dice *rand.Rand) []byte {
	b := slices.Clone(n.synced)
	for _, c := range n.pending {
		if dice.IntN(2) == 0 {
			b = c.apply(b)
		}
	}
	return b
}

// torn is the file with every sector as it was at some time since the sync, each
// at another. One in a few that are behind the times is torn, or holds garbage
// where the next write was to be.
func (n *inode) torn(dice *rand.Rand, sector int) []byte {
	b := slices.Clone(n.synced)
	longest, size := len(b), len(b)
	upTo := dice.IntN(len(n.pending) + 1)
	for i, c := range n.pending {
		now := int(c.at)
		if c.data != nil {
			now = max(size, int(c.at)+len(c.data))
		}
		longest = max(longest, now)
		if i < upTo {
			size = now
		}
	}
	b = resized(b, longest)
	for from := 0; from < longest; from += sector {
		n.wear(dice, b[from:min(from+sector, longest)], from)
	}
	return b[:size]
}

// wear brings one sector to some time since the sync.
func (n *inode) wear(dice *rand.Rand, b []byte, from int) {
	var touching []change
	for _, c := range n.pending {
		if int(c.at) < from+len(b) && (c.data == nil || int(c.at)+len(c.data) > from) {
			touching = append(touching, c)
		}
	}
	upTo := dice.IntN(len(touching) + 1)
	for _, c := range touching[:upTo] {
		c.onto(b, from, nil)
	}
	if upTo < len(touching) && dice.IntN(4) == 0 {
		touching[upTo].onto(b[:dice.IntN(len(b)+1)], from, nil)
	} else if upTo < len(touching) && dice.IntN(8) == 0 {
		touching[upTo].onto(b, from, dice)
	}
}

// onto applies a change to the bytes that begin at an offset; with dice it fills
// in anything instead.
func (c change) onto(b []byte, from int, dice *rand.Rand) {
	if c.data == nil {
		clear(b[min(len(b), max(0, int(c.at)-from)):])
		return
	}
	for i := max(0, int(c.at)-from); i < min(len(b), int(c.at)+len(c.data)-from); i++ {
		if b[i] = c.data[from+i-int(c.at)]; dice != nil {
			b[i] = byte(dice.UintN(256))
		}
	}
}

// Loss is what becomes of that which was not synced when the power goes.
type Loss int

// Losses, from the best to the worst.
const (
	Nothing Loss = iota // all of it had arrived
	Whole               // nothing of it had
	Some                // each write or name of it had arrived, or not
	Torn                // so had each sector of 512 bytes, or in part
	Pages               // or each of 4096
	losses
)

// String names the loss.
func (l Loss) String() string {
	return [...]string{"nothing", "all that was not synced", "some writes", "some sectors", "some pages"}[l]
}

// AnyLoss is one of them.
func AnyLoss(dice *rand.Rand) Loss { return Loss(dice.IntN(int(losses))) }

// Left writes the files that the disk has kept into another directory.
func (d *Disk) Left(dir string, loss Loss, dice *rand.Rand) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.off = true
	all := d.standing(loss, dice)
	for _, path := range slices.Sorted(maps.Keys(all)) {
		node := all[path]
		if err := os.WriteFile(filepath.Join(dir, filepath.Base(path)), node.left(loss, dice), 0o644); err != nil {
			return fmt.Errorf("write what is left of %s: %w", path, err)
		}
	}
	return nil
}

// standing are the names on the disk.
func (d *Disk) standing(loss Loss, dice *rand.Rand) map[string]*inode {
	switch loss {
	case Nothing:
		return d.files
	case Whole:
		return d.names
	}
	all := map[string]*inode{}
	either := maps.Clone(d.names)
	maps.Copy(either, d.files)
	for _, path := range slices.Sorted(maps.Keys(either)) { // in an order that the dice repeat
		node := d.names[path]
		if dice.IntN(2) == 0 {
			node = d.files[path]
		}
		if node != nil {
			all[path] = node
		}
	}
	return all
}

func (n *inode) left(loss Loss, dice *rand.Rand) []byte {
	switch loss {
	case Nothing:
		return n.all()
	case Some:
		return n.some(dice)
	case Torn:
		return n.torn(dice, 512)
	case Pages:
		return n.torn(dice, 4096)
	}
	return n.synced
}
