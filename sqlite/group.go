package sqlite

// together runs parts in the transaction that has begun and commits them.
// Should SQLite undo the transaction as a whole, as when the disk is full,
// each part is tried again in one of its own.
func (w *writer) together(parts []*part) {
	if len(parts) == 1 {
		w.finish(parts[0])
		return
	}
	for _, p := range parts {
		if !w.apart(p) {
			w.oneByOne(parts)
			return
		}
	}
	if err := w.conn.control(`commit`); err != nil {
		w.undo()
		w.oneByOne(parts)
	}
}

// apart runs one part of several. It reports whether the transaction still
// stands.
func (w *writer) apart(p *part) bool {
	if err := w.conn.control(`savepoint part`); err != nil {
		return false
	}
	if p.wake, p.err = p.do(w.conn); p.err != nil {
		if w.conn.db.GetAutocommit() || w.conn.control(`rollback to part`) != nil {
			return false
		}
	}
	return w.conn.control(`release part`) == nil
}

func (w *writer) oneByOne(parts []*part) {
	w.undo()
	for _, p := range parts {
		if p.err = w.conn.control(`begin immediate`); p.err == nil {
			w.finish(p)
		}
	}
}

// finish runs a part that has the transaction for itself.
func (w *writer) finish(p *part) {
	if p.wake, p.err = p.do(w.conn); p.err == nil {
		p.err = w.conn.control(`commit`)
	}
	if p.err != nil {
		w.undo()
	}
}

// undo ends a transaction that is still open. It cannot fail in a way that
// matters: the next begin would.
func (w *writer) undo() {
	if !w.conn.db.GetAutocommit() {
		_ = w.conn.control(`rollback`)
	}
}
