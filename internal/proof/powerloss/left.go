package powerloss

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
)

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
