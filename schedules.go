package stint

import (
	"errors"
)

// ErrNoSchedule says that there is no schedule of a name.
var ErrNoSchedule = errors.New("stint: there is no such schedule")

// ErrNoScheduler says that a store keeps no schedules.
var ErrNoScheduler = errors.New("stint: the store keeps no schedules")
