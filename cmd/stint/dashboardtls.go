package main

import (
	"cmp"
	"crypto/tls"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"
)

// certificates are those of a server: read from files, and read again when these
// change, as whoever renews them leaves it at that.
type certificates struct {
	certFile, keyFile string
	log               *slog.Logger

	mu      sync.Mutex // guards the rest
	looked  time.Time  // when last whether the files have changed
	changed time.Time  // as the files said when they were read last
	now     *tls.Certificate
}

// lookAgain is how often the files are looked at, at most.
const lookAgain = 10 * time.Second

// certificates reads those of the settings; nil without any.
func (f *dashboardFlags) certificates() (*certificates, error) {
	if f.certFile == "" {
		if f.keyFile != "" {
			return nil, settingf(f.flag("tls-key"), "there is no certificate to the key: name it by --%s", f.flag("tls-cert"))
		}
		return nil, nil
	}
	c := &certificates{certFile: f.certFile, keyFile: cmp.Or(f.keyFile, f.certFile), log: slog.Default()}
	if err := c.read(); err != nil {
		return nil, settingf(f.flag("tls-cert"), "%s", err.Error())
	}
	return c, nil
}

// read reads the files.
func (c *certificates) read() error {
	changed, err := c.lastChange()
	if err != nil {
		return err
	}
	pair, err := tls.LoadX509KeyPair(c.certFile, c.keyFile)
	if err != nil {
		return err
	}
	c.now, c.changed = &pair, changed
	return nil
}

// lastChange is when one of the files was changed last.
func (c *certificates) lastChange() (last time.Time, err error) {
	for _, name := range []string{c.certFile, c.keyFile} {
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

// get is what a connection is shown. Files that cannot be read, or do not fit
// while they are being replaced, leave what was read before.
func (c *certificates) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if time.Since(c.looked) < lookAgain {
		return c.now, nil
	}
	c.looked = time.Now()
	changed, err := c.lastChange()
	if err == nil && !changed.Equal(c.changed) {
		err = c.read()
	}
	if err != nil {
		c.log.Warn("the new certificate cannot be read; the one before is shown", "error", fmt.Sprint(err))
	}
	return c.now, nil
}
