package sqlite

// IndexAll has history take even the last instance.
func (s *Store) IndexAll() { s.historyLeast = 1 }
