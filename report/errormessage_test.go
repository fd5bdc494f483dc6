package report_test

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stint-go/stint/report"
)

func TestMessagesOfOneErrorAreNormalizedAlike(t *testing.T) {
	for want, messages := range map[string][]string{
		"dial tcp #: connection refused": {
			"dial tcp 10.0.0.1:5432: connection refused", "dial tcp 192.168.12.254:6432: connection refused", "dial tcp   7.7.7.7:1:\tconnection refused",
		},
		"dial tcp [#]:#: i/o timeout":          {"dial tcp [::1]:5432: i/o timeout", "dial tcp [fe80::5054:ff:fe12:3456]:80: i/o timeout"},
		"lookup db-#.internal on #":            {"lookup db-7.internal on 10.0.0.2:53", "lookup db-19.internal on 10.96.0.10:53"},
		"order # not found":                    {"order 4711 not found", "order 4712 not found", "order #12 not found", "order -3 not found", "order f47ac10b-58cc-4372-a567-0e02b2c3d479 not found", "order 3fa9c01bd not found", "order e3fa9c1 not found"},
		"order# not found":                     {"order#4711 not found", "order#1,234 not found"},
		"no # in the list":                     {"no order4711 in the list", "no 01ARZ3NDEKTSV4RRFFQ69G5FAV in the list", "no NffrFeUfNV2Hib in the list", "no V1StGXR8 in the list", "no 0x7ffe12 in the list", "no 1, 2 in the list", "no 1, 2, 3 in the list"},
		"no tenant_#":                          {"no tenant_42", "no tenant_7"},
		`no user "…"`:                          {`no user "ann"`, `no user "a \"b\" c"`, `no user "…"`, `no user ""`},
		"no user '…' here":                     {"no user 'ann' here", "no user 'it's' here", "no user '5' here"},
		"can't open '…' or '…'":                {"can't open 'a' or 'b'", "can't open 'c d' or 'e'"},
		"no user `…`":                          {"no user `ann`"},
		`can't open "…`:                        {`can't open "…`},
		`can't open " or 'x`:                   {`can't open " or 'x`},
		"no account of #, or none":             {"no account of ann@example.com, or none", "no account of bob.b+7@mail-1.example.org, or none", "no account of 7@x, or none"},
		"took #, at most #":                    {"took 1.5s, at most 1s", "took 2m30.25s, at most 2m0s", "took 350µs, at most 1h", "took -5, at most +7", "took 1,234.5, at most 1,000"},
		"# is over":                            {"2026-03-01T09:00:00Z is over", "2026-03-01T09:00:00.123456+02:00 is over", "2026-03-01 09:00:00 is over", "09:00:00 is over", "Mon, 02 Jan 2006 15:04:05 is over"},
		"urn:order:#: gone":                    {"urn:order:4711: gone", "urn:order:acme/7: gone", "urn:order:x-y.z: gone"},
		"URN:isbn:#, <urn:#>":                  {"URN:isbn:0-395-36341-1, <urn:4711:x>"},
		"open /var/lib/stint/#/job-#/log: bad": {"open /var/lib/stint/8f3a91c2/job-12/log: bad", "open /var/lib/stint/2026/01/02/job-4711/log: bad"},
		"x509: unknown utf8 sha256 http2":      {"x509: unknown utf8 sha256 http2"},
		"index out of range [#] with length #": {"index out of range [5] with length 3", "index out of range [-1] with length 0"},
		"the first line":                       {"the first line", "\n \r\n the first line \r\nanother", "the\x00first\x1bline\n7"},
		"bad \uFFFD text":                      {"bad \xff text", "bad \xff\xfe text"},
		"":                                     {"", " ", "\n\n", "\x00"},
		"#":                                    {"1", "-1.5e10", "4711 4712", "(#)"[1:2]},
		strings.Repeat("ä", 199) + "…":         {strings.Repeat("ä", 201), strings.Repeat("ä", 100_000)},
	} {
		for _, m := range messages {
			got := report.NormalizeMessage(m)
			if got != want {
				t.Errorf("%q is normalized to %q, want %q", m, got, want)
			}
		}
	}
}

func TestMessagesOfOtherErrorsStayApart(t *testing.T) {
	seen := map[string]string{}
	for _, m := range []string{
		"no rows", "connection refused", "connection reset", "unknown utf8", "unknown utf16", "order 1 not found", "order 1 not paid", "customer 1 not found",
		`no user "x"`, `no tenant "x"`, "urn:order:1 is gone", "urn:customer:1 is gone", "May", "march 1",
	} {
		n := report.NormalizeMessage(m)
		if seen[n] != "" {
			t.Errorf("%q and %q are both %q", m, seen[n], n)
		}
		seen[n] = m
	}
}

func FuzzNormalizeMessage(f *testing.F) {
	for _, s := range []string{
		"dial tcp 10.0.0.1:5432: connection refused", `a "b\"" 'c' d's`, "-5 --6 5--6 +7", "a1:b2:c3x ::1 urn:a1b2c3d4:…x", "ann@x.com@y 1@…",
		"'1'2 '\"-5\\\"", "urn:x:y.: urn:", strings.Repeat("e3fa9c ", 50), strings.Repeat("a.", 150) + "abcdefghij1 2", strings.Repeat("'x", 120), "\xff\u2028\n#",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, message string) {
		n := report.NormalizeMessage(message)
		if !utf8.ValidString(n) || utf8.RuneCountInString(n) > 200 || strings.ContainsAny(n, "\n\r\x00") {
			t.Errorf("%q is normalized to %q", message, n)
		}
		if again := report.NormalizeMessage(n); again != n {
			t.Errorf("%q is normalized to %q, and that to %q", message, n, again)
		}
	})
}

func TestNormalizingTakesTimeThatGrowsWithTheMessageOnly(t *testing.T) {
	for _, piece := range []string{"a.", "a:", "'a", `"\"`, "`", "5-", "--", "x@y ", "urn:a:", "urn:a:… ", "@", "a@", "12345678-", "…", "a1:"} {
		text := strings.Repeat(piece, 200_000)
		begin := time.Now()
		report.NormalizeMessage(text)
		if took := time.Since(begin); took > 10*time.Second {
			t.Errorf("%d bytes of %q took %v", len(text), piece, took)
		}
	}
}
