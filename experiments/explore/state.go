package explore

func (x *exploration) load() error { return nil }

func (x *exploration) saveNow(bool) error { return nil }
