package lower

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Extended attributes are read through /proc/self/fd of an O_PATH descriptor,
// since f*xattr(2) refuses those and opening for reading may not be allowed.
func procPath(fd int) string { return "/proc/self/fd/" + strconv.Itoa(fd) }

// Getxattr returns the value of an extended attribute. An absent one is
// unix.ENODATA.
func (f File) Getxattr(name string) ([]byte, error) {
	var value []byte
	err := f.withPath(func(fd int) error {
		var err error
		value, err = growing(func(buf []byte) (int, error) { return unix.Getxattr(procPath(fd), name, buf) })
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("getxattr lower %q: %w", f.Name, err)
	}
	return value, nil
}

// Listxattr returns the names of the extended attributes.
func (f File) Listxattr() ([]string, error) {
	var list []byte
	err := f.withPath(func(fd int) error {
		var err error
		list, err = growing(func(buf []byte) (int, error) { return unix.Listxattr(procPath(fd), buf) })
		return err
	})
	if errors.Is(err, unix.ENOTSUP) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("listxattr lower %q: %w", f.Name, err)
	}
	if len(list) == 0 {
		return nil, nil
	}
	return strings.Split(strings.TrimSuffix(string(list), "\x00"), "\x00"), nil
}

// Xattrs returns all extended attributes that can be read, nil if none.
func (f File) Xattrs() (map[string]string, error) {
	names, err := f.Listxattr()
	if err != nil || len(names) == 0 {
		return nil, err
	}
	m := make(map[string]string, len(names))
	for _, name := range names {
		value, err := f.Getxattr(name)
		if errors.Is(err, unix.ENODATA) || errors.Is(err, unix.EPERM) || errors.Is(err, unix.ENOTSUP) {
			continue
		}
		if err != nil {
			return nil, err
		}
		m[name] = string(value)
	}
	return m, nil
}

// growing calls fn with larger buffers until the result fits.
func growing(fn func([]byte) (int, error)) ([]byte, error) {
	buf := make([]byte, 256)
	for {
		n, err := fn(buf)
		if err == unix.ERANGE && len(buf) < 1<<20 {
			buf = make([]byte, 16*len(buf))
			continue
		}
		if err != nil {
			return nil, err
		}
		return buf[:n], nil
	}
}
