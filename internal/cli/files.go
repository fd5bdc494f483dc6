package cli

import (
	"cmp"
	"crypto/tls"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"
)

// files are read again when they change: what they say needs no restart. Its user calls one method at a time.
type files struct {
	names  []string
	read   func() error
	failed string // what the log says when they cannot be read
	log    *slog.Logger

	changed time.Time // as they said before they were read last
}

// Tests have less time.
var (
	lookAgain = 10 * time.Second // how often files are checked
	settled   = time.Second      // how long nobody has written to what is read
)

// look reads the files if they have changed. Those that cannot be read, or do not fit
// together while they are being replaced, leave what was read last.
func (f *files) look() {
	changed, err := lastChange(f.names...)
	age := time.Since(changed)
	if err == nil && !changed.Equal(f.changed) && (age < 0 || age >= settled) {
		if err = f.read(); err == nil {
			f.changed = changed
		}
	}
	if err != nil {
		f.log.Warn(f.failed, "error", fmt.Sprint(err))
	}
}

func lastChange(names ...string) (last time.Time, err error) {
	for _, name := range names {
		info, err := os.Stat(name)
		if err != nil {
			return last, err
		}
		if info.ModTime().After(last) {
			last = info.ModTime()
		}
	}
	return last, nil
}

// certificates are read from files.
type certificates struct {
	files files

	mu     sync.Mutex // guards the rest, and the files
	looked time.Time  // when these were checked for changes
	now    *tls.Certificate
}

// certificates reads those of the settings; nil without any.
func (f *dashboardFlags) certificates() (*certificates, error) {
	if f.certFile == "" {
		if f.keyFile != "" {
			return nil, settingf(f.flag("tls-key"), "there is no certificate to the key: name it by --%s", f.flag("tls-cert"))
		}
		return nil, nil
	}
	c := new(certificates)
	c.files = files{names: []string{f.certFile, cmp.Or(f.keyFile, f.certFile)}, log: slog.Default(),
		failed: "the new certificate cannot be read; the last one is still used",
		read: func() error {
			pair, err := tls.LoadX509KeyPair(f.certFile, cmp.Or(f.keyFile, f.certFile))
			if err == nil {
				c.now = &pair
			}
			return err
		}}
	var err error
	if c.files.changed, err = lastChange(c.files.names...); err == nil {
		err = c.files.read()
	}
	if err != nil {
		return nil, settingf(f.flag("tls-cert"), "%s", err.Error())
	}
	return c, nil
}

// get returns the certificate for a connection.
func (c *certificates) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if time.Since(c.looked) >= lookAgain {
		c.looked = time.Now()
		c.files.look()
	}
	return c.now, nil
}
