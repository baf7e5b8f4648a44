package explore

import "time"

// SetStateInterval sets the time after which the state is written.
func SetStateInterval(d time.Duration) { stateInterval = d }
