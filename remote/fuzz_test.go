package remote

import (
	"net/url"
	"strings"
	"testing"
)

// FuzzAddresses makes sure that what is taken for the address of a server is one
// whoever reads it, and that nothing of a refused one is told.
func FuzzAddresses(f *testing.F) {
	for _, a := range []string{
		"https://jobs.example.com", "http://[::1]:7070/stint/", "https://a?token=secret12345", "https://u:p@a", "https://a#secret12345", "ftp://secret12345", "https:///x", "http://a:b:c",
		"https://a?", "https:// a", "HTTPS://A", "https://a/%zz", "//a", "a", "",
	} {
		f.Add(a)
	}
	f.Fuzz(func(t *testing.T, address string) {
		s, err := Open(address, Config{})
		if err != nil {
			if len(address) > 12 && strings.Contains(err.Error(), address) {
				t.Errorf("%q is told: %v", address, err)
			}
			return
		}
		u, err := url.Parse(s.base + "/jobs")
		if err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" || !strings.HasSuffix(u.Path, "/jobs") {
			t.Errorf("%q is asked at %q: %v", address, s.base, err)
		}
	})
}
