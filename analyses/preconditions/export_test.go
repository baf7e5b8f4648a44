package preconditions

// Contingent has tests leave out the terms that always hold, and no others.
var Contingent = contingent
