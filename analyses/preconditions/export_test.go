package preconditions

// ContingentTerms lets tests remove the terms that always hold, and no others.
var ContingentTerms = contingentTerms
