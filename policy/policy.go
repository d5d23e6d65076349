package policy

// Op is the kind of access that is asked for.
type Op uint8

// Kinds of access, one for each way the filesystem can be used.
const (
	OpLookup Op = iota + 1
	OpList
	OpRead
	OpReadlink
	OpCreate
	OpWrite
	OpSetattr
	OpXattr
	OpUnlink
	OpRename // asked for the old name and for the new name
	OpLink   // asked for the file and for the new name
)

// Request is one question. Node is the inode that would be read or changed,
// Parent and Name the entry, where the operation has one.
type Request struct {
	Op     Op
	Node   uint64
	Parent uint64
	Name   string
	Mode   uint32        // file type and permission bits, where known
	Size   uint64        // size the file would have, for OpCreate and OpWrite
	Path   func() string // workspace-relative path; only called when a rule needs it
}

// Verdict is the outcome of a decision.
type Verdict uint8

// Verdicts. What is not Allow says which error the caller sees.
const (
	Allow      Verdict = iota
	Hidden             // as if it did not exist
	Unreadable         // may not be read
	ReadOnly           // may not be changed
	BadSuffix          // the name's suffix is not allowed
	TooLarge           // over the file size limit
	OverQuota          // over the workspace's limits
	NoSymlink          // symbolic links are not allowed here
	TooDeep            // name too long or path too deep
	Forbidden          // not permitted at all
)

// Decision is an answer. The zero Decision allows.
type Decision struct {
	Verdict Verdict
	Rule    string // the rule that decided
	Message string // what would be allowed, for the caller to read
}

// Decider answers requests. It must be safe for concurrent use and must not
// block.
type Decider interface {
	Decide(*Request) Decision
}

// AllowAll allows everything.
type AllowAll struct{}

// Decide allows.
func (AllowAll) Decide(*Request) Decision { return Decision{} }

var _ Decider = AllowAll{}
