// Package browser tests how the dashboard looks and what it does in a real browser,
// which people have and handlers do not: that its colours can be told apart, that
// its script keeps pages up to date, that everybody can use it, and that each verb
// does what its button says.
//
// A test that needs Chromium is skipped where there is none; make browser installs
// it.
package browser
