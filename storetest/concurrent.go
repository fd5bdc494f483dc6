package storetest

var concurrentTests = []test{}
