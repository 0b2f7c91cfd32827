package storetest

import "testing"

func compareWithModel(t *testing.T, open Open) {}
