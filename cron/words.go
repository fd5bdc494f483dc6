package cron

func (i interval) words() string { return i.text() }
func (c calendar) words() string { return c.source }
